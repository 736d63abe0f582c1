case when amount < 50 then 'small' when amount < 150 then 'middle' else 'large' end
